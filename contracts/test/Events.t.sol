// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Vm, World} from "./World.sol";

/// The exact log of every write: signature, topics, data, order. Written out, so that a change of an event is seen.
contract EventsTest is World {
    bytes32 private constant TRANSFER = keccak256("Transfer(address,address,uint256)");
    bytes32 private constant ASSET_MINTED = keccak256("AssetMinted(uint256,address,bytes32)");
    bytes32 private constant TAG_BOUND = keccak256("TagBound(uint256,bytes32)");
    bytes32 private constant STATE_CHANGED = keccak256("StateChanged(uint256,uint8,uint8,address)");
    bytes32 private constant ASSET_RESOLD = keccak256("AssetResold(uint256,address,address)");
    bytes32 private constant FLAGS_CHANGED = keccak256("FlagsChanged(uint256,uint8,address,bytes32)");
    bytes32 private constant METADATA_HASH_SET = keccak256("MetadataHashSet(uint256,bytes32)");
    bytes32 private constant INITIATED =
        keccak256("TransferInitiated(uint256,address,address,uint64,uint32,bytes32)");
    bytes32 private constant CANCELLED = keccak256("TransferCancelled(uint256,uint32,address)");
    bytes32 private constant LOCKED = keccak256("Locked(uint256)");
    bytes32 private constant METADATA_UPDATE = keccak256("MetadataUpdate(uint256)");
    uint64 private constant EXPIRY = uint64(START + 3 days);

    Vm.Log[] private logs;
    uint256 private next;

    function test_mint() public {
        record(issuer, abi.encodeCall(registry.mint, (maker, METADATA)));
        expectMint(1, METADATA);
        end();
        bytes32[] memory two = new bytes32[](2);
        two[1] = METADATA;
        record(issuer, abi.encodeCall(registry.mintBatch, (maker, two)));
        expectMint(2, 0);
        expectMint(3, METADATA);
        end();
        record(issuer, abi.encodeCall(registry.mintWithId, (maker, 50, METADATA)));
        expectMint(50, METADATA);
        end();
    }

    function test_bindActivateMetadata() public {
        uint256 id = mint();
        record(issuer, abi.encodeCall(registry.setMetadataHash, (id, REASON)));
        expect(METADATA_HASH_SET, id, abi.encode(REASON));
        expectPlain(METADATA_UPDATE, abi.encode(id));
        end();
        record(binder, abi.encodeCall(registry.bindTag, (id, tagOf(id))));
        expect(TAG_BOUND, id, tagOf(id), "");
        expectState(id, 1, 2, binder);
        end();
        record(qa, abi.encodeCall(registry.activate, (id)));
        expectState(id, 2, 3, qa);
        end();
    }

    /// The actor is the signer, not the relayer; what was pending is cancelled first.
    function test_claim() public {
        uint256 id = tokenIn(3);
        offer(id);
        record(stranger, claimCall(id, owner));
        expect(CANCELLED, id, abi.encode(1, attester));
        expectState(id, 3, 4, attester);
        expectTransfer(maker, owner, id);
        end();
    }

    function test_restock() public {
        uint256 id = tokenIn(4, 0, issuer);
        record(issuer, abi.encodeCall(registry.restock, (id)));
        expectState(id, 4, 3, issuer);
        end();
    }

    function test_transfer() public {
        uint256 id = tokenIn(4);
        bytes memory signature = signed(owner, initiateHash(id, owner, recipient, EXPIRY, 1, REASON));
        record(
            stranger, abi.encodeCall(registry.initiateTransferBySig, (id, recipient, EXPIRY, REASON, signature))
        );
        expect(INITIATED, id, bytes32(uint256(uint160(owner))), topic(recipient), abi.encode(EXPIRY, 2, REASON));
        end();
        signature = signed(recipient, acceptHash(id, owner, recipient, EXPIRY, 2));
        record(stranger, abi.encodeCall(registry.acceptTransferBySig, (id, signature)));
        expectTransfer(owner, recipient, id);
        expect(ASSET_RESOLD, id, topic(owner), topic(recipient), "");
        end();
    }

    function test_cancel() public {
        uint256 id = tokenIn(4);
        offer(id);
        record(owner, abi.encodeCall(registry.cancelTransfer, (id)));
        expect(CANCELLED, id, abi.encode(2, owner));
        end();
        offer(id);
        bytes memory signature = signed(recipient, cancelHash(id, owner, 3));
        record(stranger, abi.encodeCall(registry.cancelTransferBySig, (id, recipient, signature)));
        expect(CANCELLED, id, abi.encode(3, recipient));
        end();
    }

    function test_flagAndResolve() public {
        uint256 id = tokenIn(4);
        record(attester, abi.encodeCall(registry.flag, (id, 0x20, REASON)));
        expect(FLAGS_CHANGED, id, abi.encode(0x20, attester, REASON));
        end();
        record(owner, abi.encodeCall(registry.flag, (id, 0x01, REASON)));
        expect(FLAGS_CHANGED, id, abi.encode(0x21, owner, REASON));
        expectState(id, 4, 5, owner);
        end();
        record(guardian, abi.encodeCall(registry.flag, (id, 0x0c, bytes32(0))));
        expect(FLAGS_CHANGED, id, abi.encode(0x2d, guardian, bytes32(0)));
        end();
        record(owner, abi.encodeCall(registry.resolve, (id, 0x01, REASON)));
        expect(FLAGS_CHANGED, id, abi.encode(0x2c, owner, REASON));
        end();
        record(guardian, abi.encodeCall(registry.resolve, (id, 0x0c, METADATA)));
        expect(FLAGS_CHANGED, id, abi.encode(0x20, guardian, METADATA));
        expectState(id, 5, 4, guardian);
        end();
    }

    function test_recycle() public {
        uint256 id = tokenIn(4);
        offer(id);
        bytes memory signature = signed(owner, recycleHash(id, owner, 2, START));
        record(stranger, abi.encodeCall(registry.recycleBySig, (id, START, signature)));
        expect(CANCELLED, id, abi.encode(2, owner));
        expectState(id, 4, 6, owner);
        end();
        id = mint();
        record(recycler, abi.encodeCall(registry.recycle, (id)));
        expectState(id, 1, 6, recycler);
        end();
    }

    function test_documents() public {
        record(admin, abi.encodeCall(registry.setTokenBaseURI, ("x")));
        expectPlain(keccak256("BatchMetadataUpdate(uint256,uint256)"), abi.encode(0, type(uint256).max));
        end();
        record(admin, abi.encodeCall(registry.setContractURI, ("x")));
        expectPlain(keccak256("ContractURIUpdated()"), "");
        end();
    }

    function record(address caller, bytes memory call_) private {
        delete logs;
        next = 0;
        vm.recordLogs();
        does(caller, call_);
        Vm.Log[] memory found = vm.getRecordedLogs();
        for (uint256 i = 0; i < found.length; ++i) logs.push(found[i]);
    }

    function end() private view {
        require(next == logs.length, "more events than expected");
    }

    function expectMint(uint256 id, bytes32 metadata) private {
        expectTransfer(address(0), maker, id);
        expect(ASSET_MINTED, id, topic(maker), abi.encode(metadata));
        expectState(id, 0, 1, issuer);
        expectPlain(LOCKED, abi.encode(id));
    }

    function expectState(uint256 id, uint8 from, uint8 to, address actor) private {
        expect(STATE_CHANGED, id, abi.encode(from, to, actor));
    }

    function expectTransfer(address from, address to, uint256 id) private {
        bytes32[] memory topics = new bytes32[](4);
        (topics[0], topics[1], topics[2], topics[3]) = (TRANSFER, topic(from), topic(to), bytes32(id));
        expectLog(topics, "");
    }

    function expectPlain(bytes32 kind, bytes memory data) private {
        bytes32[] memory topics = new bytes32[](1);
        topics[0] = kind;
        expectLog(topics, data);
    }

    function expect(bytes32 kind, uint256 id, bytes memory data) private {
        bytes32[] memory topics = new bytes32[](2);
        (topics[0], topics[1]) = (kind, bytes32(id));
        expectLog(topics, data);
    }

    function expect(bytes32 kind, uint256 id, bytes32 second, bytes memory data) private {
        bytes32[] memory topics = new bytes32[](3);
        (topics[0], topics[1], topics[2]) = (kind, bytes32(id), second);
        expectLog(topics, data);
    }

    function expect(bytes32 kind, uint256 id, bytes32 second, bytes32 third, bytes memory data) private {
        bytes32[] memory topics = new bytes32[](4);
        (topics[0], topics[1], topics[2], topics[3]) = (kind, bytes32(id), second, third);
        expectLog(topics, data);
    }

    function expectLog(bytes32[] memory topics, bytes memory data) private {
        require(next < logs.length, "an event is missing");
        Vm.Log memory log = logs[next++];
        require(log.emitter == address(registry), "emitter");
        require(keccak256(abi.encode(log.topics)) == keccak256(abi.encode(topics)), "topics");
        require(keccak256(log.data) == keccak256(data), "data");
    }

    function topic(address account) private pure returns (bytes32) {
        return bytes32(uint256(uint160(account)));
    }
}
